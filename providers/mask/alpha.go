package mask

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"

	"stagedoor/providers/picture"
)

// Flaws of masks that mark with transparency.
const (
	NotPNG  Flaw = "must be a PNG, the only format whose masks can be translated for this model's provider"
	NoAlpha Flaw = "must have an alpha channel: what is transparent is changed"
)

// half is the alpha from which on a pixel counts as opaque.
const half = 0x80

// FromAlpha makes a mask of one whose transparent part marks what is to be
// changed, as the images shape has it: a greyscale PNG, black where the other is
// transparent, white where it is opaque. It works row by row. Its errors are
// Flaws, or those of reading the file.
func FromAlpha(f *picture.File) ([]byte, error) {
	if f.MediaType != "image/png" {
		return nil, NotPNG
	}
	if size := f.Dimensions(); max(size.Width, size.Height) > maxSide || size.Pixels() > maxPixels {
		return nil, TooLarge
	}
	rows, err := newPNGRows(f.Reader())
	if err != nil {
		return nil, err
	}
	if rows.colour != greyAlpha && rows.colour != rgbAlpha {
		return nil, NoAlpha
	}
	out := newGreyPNG(rows.pngHeader)
	pixel, alpha := rows.bitsPerPixel()/8, rows.bitsPerPixel()/8-rows.depth/8
	line := make([]byte, 1+rows.width) // the byte in front says that no filter is used
	err = rows.each(func(row []byte, pixels int) error {
		for i := range pixels {
			line[1+i] = 0
			if row[i*pixel+alpha] >= half {
				line[1+i] = 0xff
			}
		}
		return out.write(line[:1+pixels])
	})
	if err != nil {
		return nil, err
	}
	return out.close()
}

// greyPNG writes a greyscale PNG whose rows come in the order of another's, which
// is interlaced if the other is.
type greyPNG struct {
	out  bytes.Buffer
	data bytes.Buffer
	z    *zlib.Writer
}

func newGreyPNG(like pngHeader) *greyPNG {
	g := new(greyPNG)
	g.z = zlib.NewWriter(&g.data)
	head := binary.BigEndian.AppendUint32(nil, uint32(like.width))
	head = append(binary.BigEndian.AppendUint32(head, uint32(like.height)), 8, grey, 0, 0, 0)
	if like.interlaced {
		head[12] = 1
	}
	g.out.WriteString(pngMagic)
	g.chunk("IHDR", head)
	return g
}

func (g *greyPNG) write(row []byte) error {
	_, err := g.z.Write(row)
	return err
}

func (g *greyPNG) close() ([]byte, error) {
	if err := g.z.Close(); err != nil {
		return nil, err
	}
	g.chunk("IDAT", g.data.Bytes())
	g.chunk("IEND", nil)
	return g.out.Bytes(), nil
}

func (g *greyPNG) chunk(name string, data []byte) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(len(data)))
	g.out.Write(b[:])
	g.out.WriteString(name)
	g.out.Write(data)
	sum := crc32.Update(crc32.ChecksumIEEE([]byte(name)), crc32.IEEETable, data)
	binary.BigEndian.PutUint32(b[:], sum)
	g.out.Write(b[:])
}
