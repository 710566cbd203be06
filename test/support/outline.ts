import type { Page } from 'playwright-core'

/** What stays the same while numbers, times and rows change. */
const roles =
  /^\s*- (heading|region|columnheader|button|link|figure|combobox|textbox|group|list|listitem|status|navigation)\b/

/** Ports, times, ids and counts. */
const masked = (line: string): string =>
  line
    .replace(/The last (?:hour|minute|\d+ minutes)(?:, since the start)?/g, 'The last while')
    .replace(/\[ref=[^\]]*\]/g, '')
    .replace(/\d[\d.,:/]*/g, 'N')
    .trimEnd()

/** The structure of a page as a screen reader hears it: headings, regions, columns, controls. Repeated lines stand once. */
export const outlineOf = async (page: Page): Promise<string> => {
  const lines = (await page.locator('body').ariaSnapshot()).split('\n')
  const kept: string[] = []
  for (const line of lines.filter((text) => roles.test(text)).map(masked))
    if (!kept.includes(line)) kept.push(line)
  return `${kept.join('\n')}\n`
}
