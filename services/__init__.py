"""The five services of a node. None imports another: what they say to each other is in shared.contracts."""
