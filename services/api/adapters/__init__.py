"""Outside things: uvicorn, certificates and tokens, the bus."""
