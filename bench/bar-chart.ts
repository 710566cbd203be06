/** One bar of a chart. */
export type Bar = {
  readonly label: string
  readonly value: number
  /** Half the distance between the extremes, in the unit of the value. */
  readonly spread: number
  readonly isOurs: boolean
}

const width = 720
const rowHeight = 26
const labelWidth = 230
const valueWidth = 120

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Horizontal bars with whiskers for the noise, as SVG that is readable on light and dark pages. */
export function barChart(title: string, unit: string, bars: readonly Bar[]): string {
  const largest = Math.max(...bars.map(({ value, spread }) => value + spread))
  const scale = (value: number): number => (value / largest) * (width - labelWidth - valueWidth)
  const height = 44 + bars.length * rowHeight
  const rows = bars.map(({ label, value, spread, isOurs }, index) => {
    const y = 36 + index * rowHeight
    const middle = y + rowHeight / 2 - 2
    const from = labelWidth + scale(Math.max(0, value - spread))
    const to = labelWidth + scale(value + spread)
    return [
      `<text x="${labelWidth - 8}" y="${middle + 4}" text-anchor="end"${isOurs ? ' font-weight="bold"' : ''}>${escaped(label)}</text>`,
      `<rect x="${labelWidth}" y="${y}" width="${scale(value).toFixed(1)}" height="${rowHeight - 6}" fill="${isOurs ? '#2e7d32' : '#90a4ae'}"/>`,
      `<path d="M${from.toFixed(1)} ${middle}H${to.toFixed(1)}" stroke="#e65100" stroke-width="2"/>`,
      `<text x="${(to + 6).toFixed(1)}" y="${middle + 4}">${Math.round(value).toLocaleString('en')}</text>`,
    ].join('')
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13" fill="#607d8b">`,
    `<title>${escaped(title)}</title>`,
    `<text x="0" y="18" font-size="14">${escaped(title)}, ${escaped(unit)}</text>`,
    ...rows,
    '</svg>',
    '',
  ].join('\n')
}
