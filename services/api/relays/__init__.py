"""Connections after their upgrade: a client's protocol on one side, podworker's socket on the other.

`command` holds what exec and attach share, `forward` what port-forward does; `spdy_*` and `websocket_*` are the
clients' two ways of speaking.
"""
