import { access, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const page = new URL('../../docs/evidence/first-day.md', import.meta.url)
const document = await readFile(page, 'utf8')

const rowsUnder = (title: string): string[][] =>
  (document.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('|') && !line.startsWith('|---'))
    .slice(1)
    .map((line) => line.slice(1, -1).split('|'))

const linksOf = (text: string): string[] => [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link)

/** As GitHub makes them. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')

const anchorsOf = async (file: URL): Promise<string[]> =>
  [...(await readFile(file, 'utf8')).matchAll(/^#{2,3} (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))

test('each finding of a newcomer has a test or a picture that exists', async () => {
  const rows = rowsUnder('What newcomers met')
  expect(rows.length).toBeGreaterThan(20)
  for (const [finding = '', , proof = ''] of rows) {
    const links = linksOf(proof).filter((link) => /^\.\.\/(?:\.\.\/test|pictures)\//.test(link))
    expect(links.length, finding).toBeGreaterThan(0)
    for (const link of links) await access(new URL(link, page))
  }
})

test('each question of a first day is answered by a section of a page that README or the index links', async () => {
  const rows = rowsUnder('Questions of a first day')
  expect(rows.length).toBeGreaterThanOrEqual(20)
  const entrances = await Promise.all(
    ['../../README.md', '../../docs/README.md'].map(async (entrance) => {
      const file = new URL(entrance, import.meta.url)
      return [file.href, ...linksOf(await readFile(file, 'utf8')).map((link) => new URL(link, file).href)]
    }),
  )
  const oneClick = new Set(entrances.flat().map((href) => href.replace(/#.*/, '')))
  for (const [question = '', answer = ''] of rows) {
    const [link = ''] = linksOf(answer)
    const target = new URL(link, page)
    expect(await anchorsOf(target), question).toContain(target.hash.slice(1))
    expect(oneClick, question).toContain(target.href.replace(/#.*/, ''))
  }
})
