"""Pure decisions: what a path means, who may do what, how our messages look as the kubelet's JSON."""
