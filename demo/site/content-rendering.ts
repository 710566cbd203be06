import type { Site } from './call.ts'
import type { Entry } from './entry.ts'

/** Blocks that show blocks that show blocks: WordPress stops at a repeated block, the embedded site at a depth. */
const maxDepth = 3

const permalinkPath = (site: Site, entry: Entry, depth = 0): string => {
  const parent = entry.type === 'page' && depth < 10 ? site.store.get(entry.parent) : undefined
  return parent === undefined ? entry.slug : `${permalinkPath(site, parent, depth + 1)}/${entry.slug}`
}

/** The address of an entry's page: pretty once it is public, by number before that and in the trash. */
export const permalinkOf = (site: Site, entry: Entry): string => {
  if (entry.type === 'attachment') {
    const parent = site.store.get(entry.parent)
    return parent === undefined ? `${site.home}/${entry.slug}/` : `${permalinkOf(site, parent)}${entry.slug}/`
  }
  if (entry.status !== 'publish' && entry.status !== 'private') {
    return `${site.home}/?${entry.type === 'page' ? 'page_id' : 'p'}=${entry.id}`
  }
  return `${site.home}/index.php/${permalinkPath(site, entry)}/`
}

const pageList = (site: Site): string => {
  const pages = site.store.ofType('page').filter((page) => page.status === 'publish')
  const links = pages
    .sort((a, b) => a.menuOrder - b.menuOrder || a.title.localeCompare(b.title))
    .map(
      (page) =>
        `<li class="wp-block-pages-list__item"><a href="${permalinkOf(site, page)}">${page.title}</a></li>`,
    )
  return `<ul class="wp-block-page-list">${links.join('')}</ul>`
}

const reusableBlock = (site: Site, comment: string, depth: number): string => {
  const id = /"ref":(\d{1,15})/.exec(comment.slice(0, 200))?.[1]
  const block = id === undefined ? undefined : site.store.get(Number(id))
  return block === undefined || block.status !== 'publish' ? '' : renderBlocks(site, block.content, depth + 1)
}

/** Block comments give way to what they stand for; indexOf instead of a pattern, so that the time is linear. */
const renderBlocks = (site: Site, raw: string, depth: number): string => {
  let rendered = ''
  let position = 0
  for (;;) {
    const start = raw.indexOf('<!--', position)
    const end = start === -1 ? -1 : raw.indexOf('-->', start)
    if (end === -1) return rendered + raw.slice(position)
    rendered += raw.slice(position, start)
    const comment = raw.slice(start + 4, end).trimStart()
    if (comment.startsWith('wp:page-list')) rendered += pageList(site)
    if (comment.startsWith('wp:block ') && depth < maxDepth) rendered += reusableBlock(site, comment, depth)
    position = end + 3
  }
}

/** Whether content is made of blocks; then it is not wrapped in paragraphs. */
export const hasBlocks = (raw: string): boolean => raw.includes('<!-- wp:')

/** What visitors see of raw content. */
export const renderContent = (site: Site, raw: string): string => {
  if (raw === '') return ''
  return hasBlocks(raw) ? `${renderBlocks(site, raw, 0).trimEnd()}\n` : `<p>${raw}</p>\n`
}

const withoutTags = (html: string): string =>
  html
    .split('<')
    .map((part, index) => (index === 0 ? part : part.slice(part.indexOf('>') + 1)))
    .join('')

/** The excerpt: written by hand, or the first words of the content. */
export const renderExcerpt = (site: Site, entry: Entry, length: number): string => {
  if (entry.excerpt !== '') return `<p>${entry.excerpt}</p>\n`
  const words = withoutTags(renderContent(site, entry.content))
    .split(/\s/)
    .filter((word) => word !== '')
  if (words.length === 0) return ''
  const shown = words.slice(0, length).join(' ')
  return `<p>${shown}${words.length > length ? ' [&hellip;]' : ''}</p>\n`
}
