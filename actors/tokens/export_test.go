package tokens

// Forge makes a well-formed token of another token's family that nobody issued.
func Forge(token, prefix string) string {
	for _, k := range []kind{kindCode, kindRefresh} {
		if f, ok := k.parseFamily(token); ok {
			return kind(prefix).formatWith(f, make([]byte, entropy))
		}
	}
	return ""
}
