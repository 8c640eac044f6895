// Package clip makes the simulator's videos: real H.264 in MP4 that browsers play, in the sizes of the video routes and
// any whole number of seconds, with their thumbnails and spritesheets.
//
// Nothing is encoded at run time. Loops of four seconds were made once by generate.go and are embedded. Video repeats
// their samples as often as the length needs and writes new sample tables (ISO/IEC 14496-12). The package reads no
// other MP4 files.
package clip
