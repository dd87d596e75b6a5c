"""From a request to an answer: the decisions are in core, the outside behind ports."""
