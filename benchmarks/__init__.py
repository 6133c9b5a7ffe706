"""The benchmarks: tilearray beside its peers in one process, each result checked before it is timed. See README.md."""
