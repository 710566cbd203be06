import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'

/** The anchors of a page as code hosts make them: the words of a heading in small letters, joined by hyphens. */
const anchorsOf = (page: string): ReadonlySet<string> => {
  const counts = new Map<string, number>()
  const anchors = new Set<string>()
  for (const [, title = ''] of page.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/^#{1,6} +(.*?) *$/gm)) {
    const anchor = title
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    const count = counts.get(anchor) ?? 0
    counts.set(anchor, count + 1)
    anchors.add(count === 0 ? anchor : `${anchor}-${count}`)
  }
  return anchors
}

const withoutCode = (page: string): string =>
  page.replaceAll(/^```[\s\S]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, '``')

/** How many links to files and headings the pages below a folder have, and those that lead nowhere. */
export const linksOfPages = async (folder: string): Promise<{ links: number; dead: readonly string[] }> => {
  const names = (await readdir(folder, { recursive: true })).filter(
    (name) => name.endsWith('.md') && !/(?:^|\/)(?:node_modules|package|\.[^/]*)\//.test(name),
  )
  const dead: string[] = []
  let links = 0
  for (const name of names) {
    const page = await readFile(join(folder, name), 'utf8')
    for (const [, target = ''] of withoutCode(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      links += 1
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? join(folder, name) : join(folder, dirname(name), path)
      const found = await stat(file).catch(() => undefined)
      const lacksAnchor =
        anchor !== undefined &&
        file.endsWith('.md') &&
        !anchorsOf(await readFile(file, 'utf8').catch(() => '')).has(anchor)
      if (found === undefined || lacksAnchor || relative(folder, file).startsWith('..'))
        dead.push(`${name}: ${target}`)
    }
  }
  return { links, dead }
}
