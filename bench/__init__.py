"""Us, the peers and the bare journal on one workload, as ratios. See README.md beside this file."""
