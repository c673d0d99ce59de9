package strict

// flow reads an object in braces or a list in brackets, which must be in one line.
func (b *blockReader) flow() {
	open := b.data[b.at]
	end := open + 2 // of [ and { alike
	b.at++
	b.enter(open)
	if b.spaces(); b.at < len(b.data) && b.data[b.at] == end {
		b.at++
		b.leave(end)
		return
	}
	for b.at < len(b.data) {
		b.separate()
		if open == '{' && !b.flowKey() {
			b.fail()
			return
		}
		b.flowValue()
		if b.spaces(); b.at == len(b.data) {
			break
		}
		c := b.data[b.at]
		b.at++
		if c == end {
			b.leave(end)
			return
		}
		if b.spaces(); c != ',' {
			break
		}
	}
	b.fail()
}

// flowKey reads a key of an object in braces and its colon. Behind a key without quotes, a space
// must follow the colon.
func (b *blockReader) flowKey() bool {
	var key []byte
	quote := b.data[b.at]
	quoted := quote == '"' || quote == '\''
	if quoted {
		from, to, ok := b.quotedKey(quote)
		if !ok {
			return false
		}
		key, b.at = b.data[from:to], to+1
	} else {
		key = b.flowText()
	}
	if key == nil || b.data[b.at] != ':' || !b.writeKey(key, quoted) {
		return false
	}
	b.at++
	b.spaces()
	return b.at < len(b.data)
}

// flowValue reads a value in braces or brackets.
func (b *blockReader) flowValue() {
	line := b.line
	switch b.data[b.at] {
	case '"':
		b.double()
	case '\'':
		b.single()
	case '[', '{':
		b.flow()
	default:
		if text := b.flowText(); len(text) > 0 {
			b.writePlain(text)
		} else {
			b.fail()
		}
	}
	if b.line != line {
		b.fail()
	}
}

// flowText returns the text without quotes at the reader, which ends at a comma, a bracket or a
// brace, or at a colon before a space. It returns nil for anything else.
func (b *blockReader) flowText() []byte {
	data, from := b.data, b.at
	if !b.plainStart(from) {
		return nil
	}
	for i := from; i < len(data); i++ {
		switch c := data[i]; {
		case c == ',', c == ']', c == '}', c == ':' && b.isBlank(i+1):
			b.at = i
			if data[i-1] == ' ' && c == ':' {
				return nil
			}
			for data[i-1] == ' ' {
				i--
			}
			return data[from:i]
		case c == '[', c == '{', c == '?', c == '\t', c == '\n', c == '#' && data[i-1] == ' ':
			return nil
		}
	}
	return nil
}
