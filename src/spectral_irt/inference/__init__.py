"""Does the model hold, how sure are the results, and what follows from them: free functions; see `Analysis`."""
