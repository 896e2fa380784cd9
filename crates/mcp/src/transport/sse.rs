//! HTTP+SSE, the remote transport of 2024-11-05.
