package mask

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// Colour types of PNG (ISO/IEC 15948 11.2.1).
const (
	grey      = 0
	rgb       = 2
	palette   = 3
	greyAlpha = 4
	rgbAlpha  = 6
)

const pngMagic = "\x89PNG\r\n\x1a\n"

// samples is how many samples a pixel of a colour type has, and depths how many
// bits each may have.
var (
	samples = map[byte]int{grey: 1, rgb: 3, palette: 1, greyAlpha: 2, rgbAlpha: 4}
	depths  = map[byte]string{grey: "\x01\x02\x04\x08\x10", rgb: "\x08\x10", palette: "\x01\x02\x04\x08", greyAlpha: "\x08\x10", rgbAlpha: "\x08\x10"}
)

type pngHeader struct {
	width, height int
	depth         int // bits of a sample
	colour        byte
	interlaced    bool
}

// bitsPerPixel is at most 64.
func (h *pngHeader) bitsPerPixel() int { return samples[h.colour] * h.depth }

// rowBytes is the length of a row of width pixels.
func (h *pngHeader) rowBytes(width int) int { return (width*h.bitsPerPixel() + 7) / 8 }

// readPNGHeader reads the signature and the first chunk.
func readPNGHeader(r io.Reader) (pngHeader, error) {
	const length = len(pngMagic) + 8 + 13 + 4
	var b [length]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return pngHeader{}, Truncated
	}
	chunk := b[len(pngMagic):]
	data := chunk[8:21]
	if string(b[:len(pngMagic)]) != pngMagic || binary.BigEndian.Uint32(chunk) != 13 || string(chunk[4:8]) != "IHDR" ||
		crc32.ChecksumIEEE(chunk[4:21]) != binary.BigEndian.Uint32(chunk[21:]) {
		return pngHeader{}, Damaged
	}
	width, height := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	h := pngHeader{width: int(width), height: int(height), depth: int(data[8]), colour: data[9], interlaced: data[12] == 1}
	switch {
	case width == 0, height == 0, width > 1<<31-1, height > 1<<31-1, data[10] != 0, data[11] != 0, data[12] > 1:
		return pngHeader{}, Damaged
	case !hasByte(depths[h.colour], data[8]):
		return pngHeader{}, Damaged
	}
	return h, nil
}

func hasByte(s string, b byte) bool {
	for i := range len(s) {
		if s[i] == b {
			return true
		}
	}
	return false
}

// pass is one of the reduced images that an interlaced image is sent as: every
// dx-th pixel from x on, of every dy-th row from y on.
type pass struct{ x, y, dx, dy int }

var (
	whole  = []pass{{0, 0, 1, 1}}
	adam7  = []pass{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
	passes = map[bool][]pass{false: whole, true: adam7}
)

// pngRows reads the rows of a PNG one after the other. What it holds is two rows
// and the window of the decompressor, however large the image is.
type pngRows struct {
	pngHeader
	idat    *idat
	pixels  io.ReadCloser
	current []byte // with the byte of its filter in front
	before  []byte
}

func newPNGRows(r io.Reader) (*pngRows, error) {
	buffered := bufio.NewReaderSize(r, 16<<10)
	h, err := readPNGHeader(buffered)
	if err != nil {
		return nil, err
	}
	return &pngRows{pngHeader: h, idat: &idat{r: buffered}}, nil
}

// each hands every row to look, with how many pixels it has. Rows of an
// interlaced image are those of its passes: every pixel comes once.
func (p *pngRows) each(look func(row []byte, pixels int) error) error {
	pixels, err := zlib.NewReader(p.idat)
	if err != nil {
		return Truncated
	}
	p.pixels = pixels
	length := 1 + p.rowBytes(p.width)
	p.current, p.before = make([]byte, length), make([]byte, length)
	for _, s := range passes[p.interlaced] {
		width, height := (p.width-s.x+s.dx-1)/s.dx, (p.height-s.y+s.dy-1)/s.dy
		if width == 0 || height == 0 {
			continue
		}
		if err := p.pass(width, height, look); err != nil {
			return err
		}
	}
	return p.end()
}

func (p *pngRows) pass(width, height int, look func(row []byte, pixels int) error) error {
	length := 1 + p.rowBytes(width)
	current, before := p.current[:length], p.before[:length]
	clear(before)
	for range height {
		if _, err := io.ReadFull(p.pixels, current); err != nil {
			return Truncated
		}
		if err := unfilter(current[0], current[1:], before[1:], (p.bitsPerPixel()+7)/8); err != nil {
			return err
		}
		if err := look(current[1:], width); err != nil {
			return err
		}
		current, before = before, current
	}
	return nil
}

// end wants the compressed data to end with the last row, its checksum to be
// right and nothing to be hidden behind it.
func (p *pngRows) end() error {
	if n, err := p.pixels.Read(p.current[:1]); n != 0 || err != io.EOF {
		return Damaged
	}
	return nil
}

// unfilter turns differences into samples (ISO/IEC 15948 9.2).
func unfilter(filter byte, row, above []byte, bpp int) error {
	switch filter {
	case 0:
	case 1:
		for i := bpp; i < len(row); i++ {
			row[i] += row[i-bpp]
		}
	case 2:
		for i := range row {
			row[i] += above[i]
		}
	case 3:
		for i := range row {
			left := byte(0)
			if i >= bpp {
				left = row[i-bpp]
			}
			row[i] += byte((int(left) + int(above[i])) / 2)
		}
	case 4:
		for i := range row {
			left, corner := 0, 0
			if i >= bpp {
				left, corner = int(row[i-bpp]), int(above[i-bpp])
			}
			row[i] += paeth(left, int(above[i]), corner)
		}
	default:
		return Damaged
	}
	return nil
}

// paeth is the neighbour that is nearest to left + above - corner.
func paeth(left, above, corner int) byte {
	p := left + above - corner
	toLeft, toAbove, toCorner := abs(p-left), abs(p-above), abs(p-corner)
	switch {
	case toLeft <= toAbove && toLeft <= toCorner:
		return byte(left)
	case toAbove <= toCorner:
		return byte(above)
	}
	return byte(corner)
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// idat is the compressed data of a PNG: what its IDAT chunks hold, as one
// stream. Other chunks before the first are passed over; the first one behind
// them ends the stream.
type idat struct {
	r     *bufio.Reader
	left  int64 // of the current chunk
	begun bool
	ended bool
	sum   uint32
	head  [8]byte
}

// Read implements io.Reader.
func (d *idat) Read(b []byte) (int, error) {
	for d.left == 0 {
		if d.ended {
			return 0, io.EOF
		}
		if err := d.next(); err != nil {
			return 0, err
		}
	}
	n, err := d.r.Read(b[:min(int64(len(b)), d.left)])
	d.sum = crc32.Update(d.sum, crc32.IEEETable, b[:n])
	if d.left -= int64(n); d.left == 0 && err == nil {
		err = d.check()
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next finds the next chunk with data.
func (d *idat) next() error {
	for {
		if _, err := io.ReadFull(d.r, d.head[:]); err != nil {
			return io.ErrUnexpectedEOF
		}
		length, name := int64(binary.BigEndian.Uint32(d.head[:])), string(d.head[4:])
		switch {
		case length > 1<<31-1, name == "IEND" && !d.begun:
			return Damaged
		case name == "IDAT":
			d.begun, d.left, d.sum = true, length, crc32.ChecksumIEEE(d.head[4:])
			if length > 0 {
				return nil
			}
			if err := d.check(); err != nil {
				return err
			}
		case d.begun:
			d.ended = true
			return io.EOF
		default:
			if err := d.skip(length + 4); err != nil {
				return err
			}
		}
	}
}

// skip passes over a chunk's data and checksum.
func (d *idat) skip(n int64) error {
	if _, err := io.CopyN(io.Discard, d.r, n); err != nil {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// check compares the checksum of the chunk that was just read.
func (d *idat) check() error {
	var b [4]byte
	if _, err := io.ReadFull(d.r, b[:]); err != nil {
		return io.ErrUnexpectedEOF
	}
	if binary.BigEndian.Uint32(b[:]) != d.sum {
		return Damaged
	}
	return nil
}
