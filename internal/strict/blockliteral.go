package strict

// literal reads a text with |, of which the lines keep their breaks.
func (b *blockReader) literal(indent int) {
	b.at++
	chomping, width := byte(0), 0
	for range 2 {
		if b.at == len(b.data) {
			break
		}
		switch c := b.data[b.at]; {
		case chomping == 0 && (c == '-' || c == '+'):
			chomping = c
			b.at++
		case width == 0 && c >= '1' && c <= '9':
			width = int(c - '0')
			b.at++
		}
	}
	b.endLine()
	if width > 0 {
		width += indent
	}
	b.lines(indent, width, chomping)
	b.next()
}

// lines reads the lines of a text with |. Each begins with width spaces, which are left out. If
// width is 0, it is the indentation of the first line.
func (b *blockReader) lines(indent, width int, chomping byte) {
	b.out = append(b.out, '"')
	breaks := 0  // line breaks that are not written yet
	longest := 0 // spaces of an empty line before the first line
	written := false
	for b.at < len(b.data) {
		from, line := b.at, b.line
		end := b.at
		for end < len(b.data) && b.data[end] == ' ' && (width == 0 || end-from < width) {
			end++
		}
		if end == len(b.data) {
			b.fail() // without a line break at the end
			return
		}
		spaces, c := end-from, b.data[end]
		switch {
		case c == '\n':
			longest = max(longest, spaces)
			b.at = end
			b.skipLine()
			breaks++
			continue
		case c == '\t' && (width == 0 || spaces < width):
			b.fail()
			return
		case width == 0 && spaces > indent:
			if width = spaces; longest > width {
				b.fail()
				return
			}
		}
		if spaces < width || width == 0 {
			break // the text has ended
		}
		for ; breaks > 0; breaks-- {
			b.out = append(b.out, '\\', 'n')
		}
		b.at = end
		if b.skipLine(); b.line == line {
			b.fail()
			return
		}
		b.out = appendEscaped(b.out, b.data[end:b.at-1])
		breaks, written = 1, true
	}
	switch {
	case !written:
		b.fail()
		return
	case chomping == '-':
		breaks = 0
	case chomping != '+':
		breaks = 1
	}
	for ; breaks > 0; breaks-- {
		b.out = append(b.out, '\\', 'n')
	}
	b.out = append(b.out, '"')
}
