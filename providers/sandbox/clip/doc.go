// Package clip has the sandbox's videos: real H.264 in MP4 that browsers play,
// in the sizes of the video routes and in any whole number of seconds, with the
// thumbnail and the spritesheet that belong to them.
//
// Nothing is encoded at run time. Loops of four seconds were made once by
// generate.go and are embedded; Video repeats one as often as a length needs by
// writing its sample tables anew (ISO/IEC 14496-12). It reads no files but its
// own, and is no muxer for others.
package clip
