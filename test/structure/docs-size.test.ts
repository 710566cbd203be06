import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const mostWords = 15_000

const pages = (await readdir('docs')).filter((file) => file.endsWith('.md')).map((file) => `docs/${file}`)

/** As `wc -w` counts. */
const wordsOf = async (file: string): Promise<number> =>
  (await readFile(file, 'utf8')).split(/\s+/).filter((word) => word !== '').length

test(`the pages of docs/ have at most ${mostWords} words together`, async () => {
  const words = await Promise.all(pages.map(wordsOf))
  expect(words.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(mostWords)
})

test('the README has at most 550 words', async () => {
  expect(await wordsOf('README.md')).toBeLessThanOrEqual(550)
})
