package translator

// BreakShards makes every shard's Receive panic once.
func (s *Service) BreakShards() {
	for _, pid := range s.shards {
		s.system.Send(pid, (*cut)(nil))
	}
}
