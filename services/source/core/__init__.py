"""Pure: bytes of manifests in, pods and problems out. No I/O, no clock, no asyncio."""
