"""Plain modules that tests import: real servers, waiting, builders."""
