"""Read and change files of the workspace, with checkpoints and guards."""
