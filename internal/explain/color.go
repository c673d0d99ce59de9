package explain

import "slices"

// queueColors are the colors of queues, by the order of their names. Further queues have no color.
var queueColors = []string{"32", "36", "33", "35", "34", "92", "96", "93", "95", "94"}

const (
	colorFree  = "2"  // faint
	colorFault = "31" // red: lost, or used by a process that Berth did not place
)

// assignColors gives colors to the queues of the tasks that hold devices.
func (p *painter) assignColors(sections []*section) {
	if !p.style.Color {
		return
	}
	for _, s := range sections {
		if s.summedUp {
			continue
		}
		s.eachCell(func(c *cell) {
			if c.queue != "" && !slices.Contains(p.queues, c.queue) {
				p.queues = append(p.queues, c.queue)
			}
		})
	}
	slices.SortFunc(p.queues, CompareNatural)
}

// paint returns the text of a cell in the color of its queue.
func (p *painter) paint(c *cell, text string) string {
	switch c.mark {
	case markFree:
		return p.color(colorFree, text)
	case markLost, markForeign:
		return p.color(colorFault, text)
	}
	return p.color(p.queueColor(c.queue), text)
}

// queueColor returns the color of a queue, or "" if it has none.
func (p *painter) queueColor(queue string) string {
	if i := slices.Index(p.queues, queue); i >= 0 && i < len(queueColors) {
		return queueColors[i]
	}
	return ""
}

func (p *painter) color(code, text string) string {
	if !p.style.Color || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
