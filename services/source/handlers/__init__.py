"""The imperative shell of source: listings in, core decides, the bus and source.db are told."""
