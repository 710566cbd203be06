import { readFile, rm, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pluginSets } from './sites/archives.ts'
import { describeSite } from './sites/describe-site.ts'
import { type RealSite, startRealSite } from './sites/start-real-site.ts'

/** Of another plugin: `?adds=` names a filter of addresses to which it adds the description of a category. */
const adding = `<?php isset( $_GET['adds'] ) && add_filter( $_GET['adds'], function ( $link ) {
	$terms = get_the_terms( get_post(), 'category' );
	return $link . '?' . ( $terms ? $terms[0]->description : '' );
} );`

/** Of another plugin: `?numbers=` adds to tags how many posts the languages have */
const numbering = `<?php isset( $_GET['numbers'] ) && add_filter( 'rest_prepare_post_tag', function ( $response ) {
	$response->data['numbers'] = pll_languages_list( array( 'fields' => 'language:count' ) );
	return $response;
} );`

type Language = { readonly term_props: Readonly<Record<string, { readonly term_id: number }>> }

describeSite('what responses of a site with languages depend on (Polylang)', () => {
  let site: RealSite

  const read = async (path: string) => {
    const response = await fetch(`${site.origin}/index.php/wp-json${path}`)
    const [{ link = '' } = {}] = (await response.json()) as readonly { readonly link?: string }[]
    return { link, tags: response.headers.get('trellis-tags') ?? '' }
  }

  /** What a new post changes of options and of the terms of languages. */
  const changesOfNewPost = async () => {
    const before = site.intake.pushes.length
    const response = await site.rest('POST', '/wp/v2/posts', { title: 'New', status: 'publish' })
    expect(response.status).toBe(201)
    await response.arrayBuffer()
    await expect.poll(() => site.intake.pushes.length).toBeGreaterThan(before)
    const changes = site.intake.pushes.slice(before).flatMap((push) => push.changes)
    const languages = changes.flatMap(({ taxonomy = '' }) =>
      taxonomy.endsWith('language') ? [taxonomy] : [],
    )
    return {
      options: changes.flatMap(({ kind, name }) => (kind === 'option' ? [name] : [])),
      languages: [...new Set(languages)],
    }
  }

  beforeAll(async () => {
    // With Pods beside it, whose site other tests have built.
    site = await startRealSite({ plugins: pluginSets.pods, withCompanion: true })
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-adding.php`, adding)
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-numbering.php`, numbering)
  }, 600_000)
  afterAll(() => site?.stop())

  test('addresses have the slug of a language, and nothing more of terms', async () => {
    const path = '/wp/v2/posts?per_page=1&order=asc'
    const { link, tags } = await read(path)
    expect(link).toContain('/de/')
    expect(tags).toMatch(/;plain;slugs;/)
    for (const hook of ['post_link', 'pll_post_type_link']) {
      expect((await read(`${path}&adds=${hook}`)).tags, hook).not.toMatch(/;(?:plain|uncounted|slugs);/)
    }
  })

  test('the numbers of posts in the list of languages are those of terms, and named by the responses that may show them', async () => {
    const languages = (await (
      await fetch(`${site.origin}/index.php/wp-json/pll/v1/languages`)
    ).json()) as Language[]
    const terms = languages.flatMap(({ term_props }) =>
      Object.values(term_props).map(({ term_id }) => term_id),
    )
    const named = async (path: string): Promise<readonly number[]> => {
      const { tags } = await read(path)
      expect(tags, path).toMatch(/;complete;/)
      const [, ids = ''] = /;t=([^;]*)/.exec(tags) ?? []
      return terms.filter((term) => ids.split(',').includes(String(term)))
    }
    for (const path of ['/pll/v1/languages', '/wp/v2/tags?numbers=1'])
      expect(await named(path), path).toEqual(terms)
    for (const path of ['/wp/v2/tags', '/wp/v2/posts', '/wp/v2/search'])
      expect(await named(path), path).toEqual([])
    expect(await changesOfNewPost()).toEqual({ options: [], languages: ['language'] })
  })

  test('in a version that was not tested the list of languages is an option that a new post changes', async () => {
    const file = `${site.site}/wp-content/plugins/polylang/polylang.php`
    const code = await readFile(file, 'utf8')
    // Copies of a site share its files.
    await rm(file)
    await writeFile(file, code.replace(/(?<='POLYLANG_VERSION', ')[^']+/, '99.1'))
    // PHP compiles a file again some seconds after it was changed.
    await expect
      .poll(async () => (await changesOfNewPost()).options, { timeout: 30_000 })
      .toEqual(['_transient_pll_languages_list'])
  }, 60_000)
})
