"""When what is read, and what is answered."""
