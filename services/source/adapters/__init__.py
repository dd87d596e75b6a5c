"""What source touches outside: manifest directories and source.db."""
