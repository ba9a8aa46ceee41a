"""Which of many estimates are surely in their order, and the ranks that follow."""
