package replay

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// Plot writes the results as an SVG image with three diagrams: how much is allocated, how much is
// free and of no use to the workload, and how long decisions take.
func Plot(w io.Writer, results []*Result) error {
	p := &picture{}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, 3*panelWidth+20, panelHeight+40)
	p.printf(`<rect width="100%%" height="100%%" fill="white"/>`)
	title := "replay"
	if len(results) > 0 {
		title = fmt.Sprintf("%s: %d nodes, %d devices", results[0].Trace, results[0].Nodes, results[0].Devices)
	}
	p.printf(`<text x="20" y="18" font-size="14">%s</text>`, html.EscapeString(title))
	p.course(0, "allocated devices (%)", results, func(x Point) float64 { return 100 * x.Allocated })
	p.course(1, "free devices of no use to the workload (%)", results, func(x Point) float64 { return 100 * x.Fragmented })
	p.durations(2, results)
	p.legend(results)
	p.printf("</svg>")
	_, err := io.WriteString(w, p.String())
	return err
}

const (
	panelWidth  = 380
	panelHeight = 300
	left        = 50 // space for labels at the left of a diagram
	top         = 50
	plotWidth   = panelWidth - left - 20
	plotHeight  = panelHeight - top - 30
)

// colors can be told apart without seeing all colors.
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

type picture struct{ strings.Builder }

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// frame draws the axes of a diagram and returns its position.
func (p *picture) frame(panel int, title, below string) (x, y float64) {
	x, y = float64(panel*panelWidth+left), top
	p.printf(`<rect x="%.0f" y="%.0f" width="%d" height="%d" fill="none" stroke="#999"/>`, x, y, plotWidth, plotHeight)
	p.printf(`<text x="%.0f" y="%.0f">%s</text>`, x, y-8, html.EscapeString(title))
	p.printf(`<text x="%.0f" y="%.0f" text-anchor="end">%s</text>`, x+plotWidth, y+plotHeight+28, html.EscapeString(below))
	return x, y
}

// tick writes a number at an axis.
func (p *picture) tick(x, y float64, anchor, text string) {
	p.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="#555" font-size="10">%s</text>`, x, y, anchor, text)
}

// line draws a line through points from 0 to 1 in both directions.
func (p *picture) line(x, y float64, color string, points [][2]float64) {
	var b strings.Builder
	for _, c := range points {
		fmt.Fprintf(&b, "%.1f,%.1f ", x+min(1, max(0, c[0]))*plotWidth, y+(1-min(1, max(0, c[1])))*plotHeight)
	}
	p.printf(`<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`, color, strings.TrimSpace(b.String()))
}

// course draws a value over arrivals, for the first seed of each result.
func (p *picture) course(panel int, title string, results []*Result, value func(Point) float64) {
	x, y := p.frame(panel, title, "arrived, % of the devices")
	mostX, mostY := 1.0, 1.0
	for _, r := range results {
		for _, c := range first(r.Course) {
			mostX, mostY = max(mostX, 100*c.Arrived), max(mostY, value(c))
		}
	}
	p.tick(x-4, y+plotHeight, "end", "0")
	p.tick(x-4, y+10, "end", fmt.Sprintf("%.0f", mostY))
	p.tick(x+plotWidth, y+plotHeight+14, "end", fmt.Sprintf("%.0f", mostX))
	for i, r := range results {
		var points [][2]float64
		for _, c := range first(r.Course) {
			points = append(points, [2]float64{100 * c.Arrived / mostX, value(c) / mostY})
		}
		p.line(x, y, colors[i%len(colors)], points)
	}
}

func first(course [][]Point) []Point {
	if len(course) == 0 {
		return nil
	}
	return course[0]
}

// durations draws which share of the decisions took at most how long. The axis of times is
// logarithmic, from 1 µs to 1 s.
func (p *picture) durations(panel int, results []*Result) {
	x, y := p.frame(panel, "decisions that took at most this long (%)", "time")
	for i, text := range []string{"1 µs", "10", "100", "1 ms", "10", "100", "1 s"} {
		p.tick(x+float64(i)/6*plotWidth, y+plotHeight+14, "middle", text)
	}
	p.tick(x-4, y+plotHeight, "end", "0")
	p.tick(x-4, y+10, "end", "100")
	for i, r := range results {
		if len(r.Durations) == 0 {
			continue
		}
		var points [][2]float64
		for step := range 121 {
			limit := math.Pow(10, float64(step)/20) * 1000
			n, _ := slices.BinarySearch(r.Durations, int64(limit)+1)
			points = append(points, [2]float64{float64(step) / 120, float64(n) / float64(len(r.Durations))})
		}
		p.line(x, y, colors[i%len(colors)], points)
	}
}

// legend names the policies.
func (p *picture) legend(results []*Result) {
	for i, r := range results {
		x := 20 + 160*i
		p.printf(`<rect x="%d" y="%d" width="12" height="3" fill="%s"/>`, x, panelHeight+22, colors[i%len(colors)])
		p.printf(`<text x="%d" y="%d">%s</text>`, x+18, panelHeight+28, html.EscapeString(r.Policy))
	}
}
