"""Decisions of status: pure functions on frozen data."""
