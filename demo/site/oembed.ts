import { type Call, ok, type Resource, type SiteResponse } from './call.ts'
import { permalinkOf } from './content-rendering.ts'
import type { Entry } from './entry.ts'
import { denied, SiteFault } from './site-fault.ts'
import { integer, text } from './values.ts'

const entryAt = (call: Call, address: string): Entry => {
  const { site } = call
  const wanted = address.replace(/\/$/, '')
  const entry = ['post', 'page']
    .flatMap((type) => site.store.ofType(type))
    .find((one) => one.status === 'publish' && permalinkOf(site, one).replace(/\/$/, '') === wanted)
  if (entry === undefined) throw new SiteFault(404, 'oembed_invalid_url', 'Not Found')
  return entry
}

const widths = { min: 200, max: 600 }

const embedOf = (call: Call, entry: Entry): Record<string, unknown> => {
  const { site } = call
  const address = permalinkOf(site, entry)
  const author = site.store.users.get(entry.author)
  const width = Math.min(Math.max(integer(call.args, 'maxwidth') ?? widths.max, widths.min), widths.max)
  const height = Math.max(Math.ceil((width / 16) * 9), widths.min)
  // WordPress makes a new secret for each response; here it follows from the post, so that answers can be compared.
  const secret = `embed${entry.id}`
  const image = site.store.get(entry.featuredMedia)
  return {
    version: '1.0',
    provider_name: 'Trellis demo',
    provider_url: site.home,
    author_name: author?.name ?? '',
    author_url: `${site.home}/index.php/author/${author?.slug ?? ''}/`,
    title: entry.title,
    type: 'rich',
    width,
    height,
    html: `<blockquote class="wp-embedded-content" data-secret="${secret}"><a href="${address}">${entry.title}</a></blockquote><iframe sandbox="allow-scripts" src="${address}embed/#?secret=${secret}" width="${width}" height="${height}"></iframe>`,
    ...(image && {
      thumbnail_url: image.own['source_url'],
      thumbnail_width: width,
      thumbnail_height: height,
    }),
  }
}

const escapeXml = (value: string): string =>
  value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const asXml = (body: Record<string, unknown>): SiteResponse => ({
  status: 200,
  headers: { 'Content-Type': 'text/xml; charset=UTF-8' },
  body: `<?xml version="1.0"?>\n<oembed>${Object.entries(body)
    .map(([name, value]) => `<${name}>${escapeXml(String(value))}</${name}>`)
    .join('')}</oembed>\n`,
})

/** How a page of the site is embedded elsewhere, as JSON or XML. */
export const oembedResource: Resource = {
  permit: () => undefined,
  run: (call) => {
    const embed = embedOf(call, entryAt(call, text(call.args, 'url') ?? ''))
    return text(call.args, 'format') === 'xml' ? asXml(embed) : ok(embed)
  },
}

/** The lookup for editors: pages of the site itself, since the demo asks no other server. */
export const oembedProxyResource: Resource = {
  permit: (call) => {
    if (call.caller.role === 'admin') return
    const message = 'Sorry, you are not allowed to make proxied oEmbed requests.'
    throw denied(call.caller, 'rest_forbidden', message)
  },
  run: (call) => ok(embedOf(call, entryAt(call, text(call.args, 'url') ?? ''))),
}
