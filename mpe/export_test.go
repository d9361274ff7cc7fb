package mpe

// Waiting is how many requests and probes the engine believes to be waited for.
func (e *Engine) Waiting() int { return int(e.waiting.Load()) }
