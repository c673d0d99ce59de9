package command

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFitGrid(t *testing.T) {
	rows := [][]string{
		{"ACTION", "WORKLOAD", "NODE", "SCORE"},
		{"Bind", "job/a", "production-gpu-worker-1.eu-west.example.com", "90.0"},
		{"Bind", "job/b", "production-gpu-worker-12.eu-west.example.com", "8.0"},
	}
	var b strings.Builder
	fitGrid(&b, rows, 44, 1, 2)
	for _, line := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(line) > 44 {
			t.Errorf("too wide: %s", line)
		}
	}
	if rows[1][2] == rows[2][2] || !strings.Contains(rows[2][2], "12") {
		t.Errorf("%q and %q", rows[1][2], rows[2][2])
	}
}

func TestWrapLast(t *testing.T) {
	var b strings.Builder
	grid(&b, wrapLast([][]string{{"NODE", "FOR"}, {"gpu-1", "job/finetune (Reclaimed)"}, {"gpu-2", ""}}, 21))
	if want := "NODE   FOR\ngpu-1  job/finetune\n       (Reclaimed)\ngpu-2\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
