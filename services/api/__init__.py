"""The HTTPS face: authentication, authorization, and the kubelet's endpoints out of what the others publish.

Owns nothing but connections. Holds both buckets in memory, so that an answer about pods costs no question;
asks source, podworker, status and stats for the rest, and relays bytes from podworker's sockets unread.
"""
