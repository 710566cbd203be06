import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSiteValidator } from '../../src/wordpress/arguments/site-validator.ts'
import { siteRows } from '../../src/wordpress/routes/route-table.ts'
import { type Meaning, meanings } from '../properties/list-meanings.ts'
import { chooserOf, spellQuery } from '../properties/list-spellings.ts'
import { times } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { send } from './differential/send.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

// No gateway here: WordPress is asked itself whether what is taken for one request is one.

/** SAMPLES=5000 for a long look; SEED=n to see the same samples again. */
const samples = Number(process.env['SAMPLES'] ?? times(40, 300))
const seed = Number(process.env['SEED'] ?? times(1, Date.now() % 2 ** 31))

const collections = ['posts', 'pages', 'media'] as const

type Sample = {
  readonly asAdmin: boolean
  readonly raw: string
  readonly canonical: string
}

const filters = [
  'offset',
  'page',
  'search',
  'include',
  'exclude',
  'slug',
  'sticky',
  'after',
  'categories',
] as const

/** Eight o'clock, when the posts of the site under test were written. */
const morning = Date.UTC(2025, 2, 20, 8) / 1000

/** A meaning that something is likely to answer to: few filters, ids that are there, times when something was written. */
function answerable(meaning: Meaning, kept: readonly string[]): Meaning {
  const { after, include, exclude, ...others } = meaning
  const moved: Meaning = {
    ...others,
    ...(include && { include: include.map((id) => id + 100) }),
    ...(exclude && { exclude: exclude.map((id) => id + 100) }),
    ...(after && { after: { ...after, seconds: after.seconds - 1_000_000_001 + morning } }),
  }
  const isFilter = (name: string): boolean => (filters as readonly string[]).includes(name)
  const entries = Object.entries(moved).filter(([name]) => !isFilter(name) || kept.includes(name))
  return Object.fromEntries(entries)
}

/** What a collection does not know would be left out of the canonical form, which says nothing. */
function forCollection(collection: (typeof collections)[number], meaning: Meaning): Meaning {
  const { categories, sticky, status, embed, per_page: perPage, ...common } = meaning
  return {
    ...common,
    // A hundred posts with all that is embedded take WordPress half a second.
    ...(perPage === undefined || (embed !== undefined && perPage === 100) ? {} : { per_page: perPage }),
    ...(embed === undefined ? {} : { embed }),
    ...(collection === 'media' || status === undefined ? {} : { status }),
    ...(collection !== 'posts' || categories === undefined ? {} : { categories }),
    ...(collection !== 'posts' || sticky === undefined ? {} : { sticky }),
  }
}

const validator = createSiteValidator({
  limits: { queryParameters: 256, jsonDepth: 64 },
  unknownParameters: 'strip',
  trackingParameters: ['utm_*'],
})

function canonicalQuery(collection: string, query: string): string {
  const row = siteRows.find(({ id }) => id === `${collection}.collection`)
  const endpoint = row?.endpoints[0]
  if (row === undefined || endpoint === undefined) throw new Error(`no list of ${collection}`)
  const facts = { method: 'GET', row, endpoint, pathParameters: {}, query }
  const validation = validator.validate({ ...facts, contentType: undefined, content: undefined })
  if (validation.kind === 'invalid') throw new Error(`${query}: ${JSON.stringify(validation.body)}`)
  return validation.query
}

const targets = fc
  .tuple(
    fc.constantFrom(...collections),
    meanings,
    fc.array(fc.nat(1000), { minLength: 20, maxLength: 40 }),
    fc.constantFrom('/wp/v2/', '/wp/v2/', '/WP/V2/', '/Wp/v2/'),
    fc.constantFrom('', '', '/', '//'),
    fc.subarray([...filters], { maxLength: 2 }),
  )
  .map(([collection, any, numbers, prefix, end, kept]): Sample => {
    const meaning = forCollection(collection, answerable(any, kept))
    const query = spellQuery(meaning, chooserOf(numbers))
    const isPublic = meaning.status?.every((status) => status === 'publish') !== false
    return {
      asAdmin: !isPublic,
      raw: `${prefix}${collection}${end}?${query}`,
      canonical: `/wp/v2/${collection}?${canonicalQuery(collection, query)}`,
    }
  })

type Seen = {
  /** Responses to canonical forms. */
  readonly forms: Map<string, Promise<string>>
  readonly differing: unknown[]
  respelled: number
  withItems: number
}

describeWith('php', 'an equivalence oracle', () => {
  let wordpress: WordPress
  beforeAll(async () => {
    wordpress = await startWordPress()
  })
  afterAll(() => wordpress?.stop())

  async function response(target: string, asAdmin: boolean): Promise<string> {
    const { status, text, headers } = await send(wordpress.origin, {
      method: 'GET',
      target: `/index.php/wp-json${target}`,
      headers: asAdmin ? { Authorization: basic(wordpress.credentials.admin) } : {},
      content: undefined,
    })
    const { 'x-wp-total': total, 'x-wp-totalpages': pages } = headers
    return `${status} total ${total} pages ${pages}\n${text}`
  }

  async function judge(sample: Sample, seen: Seen): Promise<void> {
    const name = `${sample.asAdmin} ${sample.canonical}`
    const canonical = seen.forms.get(name) ?? response(sample.canonical, sample.asAdmin)
    seen.forms.set(name, canonical)
    const ofRaw = await response(sample.raw, sample.asAdmin)
    const ofCanonical = await canonical
    if (sample.raw !== sample.canonical) seen.respelled += 1
    if (ofRaw.startsWith('200') && !ofRaw.endsWith('\n[]')) seen.withItems += 1
    if (ofRaw === ofCanonical) return
    seen.differing.push({ ...sample, ofRaw: ofRaw.slice(0, 300), ofCanonical: ofCanonical.slice(0, 300) })
  }

  test(`${samples} spellings are answered byte for byte as their canonical forms (SEED=${seed})`, async () => {
    const seen: Seen = { forms: new Map(), respelled: 0, withItems: 0, differing: [] }
    const waiting = fc.sample(targets, { numRuns: samples, seed }).values()
    const work = async (): Promise<void> => {
      for (const sample of waiting) await judge(sample, seen)
    }
    await Promise.all([work(), work(), work(), work()])
    const { forms, respelled, withItems, differing } = seen
    process.stdout.write(
      `equivalence: ${samples} samples, ${respelled} respelled, ${forms.size} canonical forms, ` +
        `${withItems} with items in the answer, ${differing.length} false merges\n`,
    )
    expect(differing).toEqual([])
    // Otherwise the samples would say nothing.
    expect(respelled).toBeGreaterThan(samples / 2)
    expect(withItems).toBeGreaterThan(samples / 4)
  }, 300_000)
})
