//! HTTP headers of the modern era that repeat parts of a message.
