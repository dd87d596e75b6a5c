"""What at least two services need, and nothing that knows one of them."""
