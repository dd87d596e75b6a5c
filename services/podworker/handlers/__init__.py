"""The imperative shell of podworker: messages and engine events in, core decides, ports act, reports out."""
