package replay

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// row is a line of a table.
type row struct {
	columns map[string]int
	fields  []string
	file    string
	line    int
	err     *error
}

// text returns the field of the column; "" if the table has no such column.
func (r row) text(column string) string {
	if at, ok := r.columns[column]; ok && at < len(r.fields) {
		return strings.TrimSpace(r.fields[at])
	}
	return ""
}

// number returns the field of the column as a whole number that is not negative. An empty field is
// 0. Digits after a point are dropped.
func (r row) number(column string) int64 {
	text := r.text(column)
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v < 1<<53) {
		r.fail(column, "%q is not a number from 0 to 2^53", text)
		return 0
	}
	return int64(v)
}

// check fails the reading unless ok is true.
func (r row) check(ok bool, column, want string) {
	if !ok {
		r.fail(column, "%q: %s", r.text(column), want)
	}
}

func (r row) fail(column, format string, args ...any) {
	if *r.err == nil {
		*r.err = fmt.Errorf("%s:%d: %s: %s", r.file, r.line, column, fmt.Sprintf(format, args...))
	}
}

// readTable reads a CSV file with a header, and calls add for each line. The header must have the
// columns.
func readTable(from io.Reader, file string, columns []string, add func(row)) error {
	return readLines(from, file, columns, false, add)
}

// readPlainTable reads a CSV file that has the columns and no header. A header is accepted, too.
func readPlainTable(from io.Reader, file string, columns []string, add func(row)) error {
	return readLines(from, file, columns, true, add)
}

func readLines(from io.Reader, file string, columns []string, plain bool, add func(row)) error {
	reader := csv.NewReader(from)
	reader.FieldsPerRecord = -1
	reader.ReuseRecord = true
	r := row{columns: map[string]int{}, file: file, err: new(error)}
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: the file is empty; want the columns %s", file, strings.Join(columns, ", "))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if plain && header[0] != columns[0] {
		for i, name := range columns {
			r.columns[name] = i
		}
		r.fields, r.line = header, 1
		if add(r); *r.err != nil {
			return *r.err
		}
		header = columns
	}
	for i, name := range header {
		r.columns[strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))] = i
	}
	for _, name := range columns {
		if _, ok := r.columns[name]; !ok {
			return fmt.Errorf("%s:1: the column %s is missing; the header has %s", file, name, strings.Join(header, ", "))
		}
	}
	for {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		r.fields = fields
		r.line, _ = reader.FieldPos(0)
		if add(r); *r.err != nil {
			return *r.err
		}
	}
}
