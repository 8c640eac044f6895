// Package mp4 recognises videos that clients upload, by their content, and reads
// from the header how large and how long they are (ISO/IEC 14496-12). It decodes
// no picture: whether a provider can, the provider says.
package mp4
