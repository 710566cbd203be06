import { access, readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { firstTenMinutes } from '../support/first-ten-minutes.ts'
import { describeWith } from '../support/requirements.ts'

const pictures = new URL('../../docs/pictures/', import.meta.url)

describeWith('chromium', "a person's first ten minutes", () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  // Pixels differ between machines; the structure of a page is written beside its picture.
  test('look as the pictures of the documents do: if not, npm run picture', {
    timeout: 120_000,
  }, async () => {
    const sights = await firstTenMinutes(browser, false)
    expect(sights.map(({ name }) => name)).toEqual([
      'front-page',
      'edit',
      'advise',
      'hosts-and-upstreams',
      'status',
      'terminal',
    ])
    for (const { name, outline } of sights) {
      expect.soft(outline, name).toBe(await readFile(new URL(`${name}.outline.txt`, pictures), 'utf8'))
      if (name !== 'terminal') await access(new URL(`${name}.png`, pictures))
    }
  })
})
