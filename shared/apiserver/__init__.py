"""The Kubernetes API server as a client sees it: a kubeconfig, requests, watches. Who uses it decides what to say."""
