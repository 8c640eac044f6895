package flow

// Kept returns the number of traces that are kept now.
func (s *Spans) Kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
