import { permalinkOf } from './content-rendering.ts'
import type { Entry } from './entry.ts'
import {
  editing,
  everywhere,
  type Field,
  field,
  full,
  phpMap,
  rendered,
  sharedFields,
  type View,
} from './fields.ts'

const own =
  (name: string): Field['value'] =>
  (entry) =>
    entry.own[name]

const paragraph = (text: string): string => (text === '' ? '' : `<p>${text}</p>\n`)

const ownText = (entry: Entry, name: string): string => {
  const value = entry.own[name]
  return typeof value === 'string' ? value : ''
}

const attachmentHtml = (entry: Entry): string => {
  const source = ownText(entry, 'source_url')
  const shown =
    entry.own['media_type'] === 'image' ? `<img loading="lazy" src="${source}" alt="" />` : entry.title
  return `<p class="attachment"><a href='${source}'>${shown}</a></p>\n`
}

const attachmentFields: Readonly<Record<string, Field>> = {
  description: field(full, (entry, view) =>
    rendered(
      ownText(entry, 'description'),
      attachmentHtml(entry) + paragraph(ownText(entry, 'description')),
      view,
    ),
  ),
  caption: field(everywhere, (entry, view) =>
    rendered(ownText(entry, 'caption'), paragraph(ownText(entry, 'caption')), view),
  ),
  alt_text: field(everywhere, own('alt_text')),
  media_type: field(everywhere, own('media_type')),
  mime_type: field(everywhere, own('mime_type')),
  media_details: field(everywhere, own('media_details')),
  post: field(full, (entry) => (entry.parent === 0 ? null : entry.parent)),
  source_url: field(everywhere, own('source_url')),
  missing_image_sizes: field(editing, () => []),
}

/** What a menu item points to decides its title and address, so that both follow the target's changes. */
const menuTarget = (entry: Entry, view: View): { title: string; url: string; label: string } => {
  const { store, home } = view.site
  const id = Number(entry.own['object_id'])
  if (entry.own['type'] === 'post_type') {
    const target = store.get(id)
    return {
      title: target?.title ?? '',
      url: target === undefined ? '' : permalinkOf(view.site, target),
      label: entry.own['object'] === 'page' ? 'Page' : 'Post',
    }
  }
  if (entry.own['type'] === 'taxonomy') {
    const term = store.terms.get(id)
    return {
      title: term?.name ?? '',
      url: term === undefined ? '' : `${home}/index.php/category/${term.slug}/`,
      label: entry.own['object'] === 'category' ? 'Category' : 'Tag',
    }
  }
  return { title: '', url: ownText(entry, 'url'), label: 'Custom Link' }
}

const menuTitle = (entry: Entry, view: View): Record<string, string> => {
  const title = entry.title === '' ? menuTarget(entry, view).title : entry.title
  return rendered(title, title, view)
}

const menuItemFields: Readonly<Record<string, Field>> = {
  title: field(everywhere, menuTitle),
  status: field(everywhere, (entry) => entry.status),
  url: field(everywhere, (entry, view) => menuTarget(entry, view).url),
  attr_title: field(everywhere, own('attr_title')),
  description: field(everywhere, (entry) => entry.content),
  type: field(everywhere, own('type')),
  type_label: field(everywhere, (entry, view) => menuTarget(entry, view).label),
  object: field(everywhere, own('object')),
  object_id: field(everywhere, (entry) =>
    entry.own['type'] === 'custom' ? entry.id : Number(entry.own['object_id']),
  ),
  parent: field(everywhere, (entry) => entry.parent),
  menu_order: field(everywhere, (entry) => entry.menuOrder),
  target: field(everywhere, own('target')),
  classes: field(everywhere, own('classes')),
  xfn: field(everywhere, own('xfn')),
  invalid: field(everywhere, () => false),
  meta: field(full, (entry) => phpMap(entry.meta)),
  menus: field(full, (entry) => entry.terms['nav_menu']?.[0] ?? 0),
}

const shared = (name: string): Field =>
  field(everywhere, (entry, view) => sharedFields[name]?.value(entry, view))

const navigationFields: Readonly<Record<string, Field>> = {
  status: shared('status'),
  content: shared('content'),
}

/** The fields that one type alone has, or shows in its own way. */
export const ownFields: Readonly<Record<string, Readonly<Record<string, Field>>>> = {
  attachment: attachmentFields,
  nav_menu_item: menuItemFields,
  wp_navigation: navigationFields,
}
