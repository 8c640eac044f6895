// Package faults holds the fault catalogue against the real program: every way in
// which an upstream or a client can misbehave, times every shape a client speaks,
// whole and streamed, times every shape an upstream speaks. Whatever happens, a
// client must see exactly one legal end, of the right class, with nothing in it that
// was not meant for it.
package faults
