/** Lines of cells as text in columns of equal width; the last column is left as it is. */
export const textTable = (lines: readonly (readonly string[])[]): string => {
  const widths: number[] = []
  for (const line of lines) {
    line.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length)
    })
  }
  const text = lines.map((line) =>
    line
      .map((cell, column) => (column === line.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
  return text.map((line) => `${line}\n`).join('')
}
