import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pluginSets } from './sites/archives.ts'
import { describeSite } from './sites/describe-site.ts'
import { type RealSite, startRealSite } from './sites/start-real-site.ts'

/** Of another plugin: `?adds=` names a filter of addresses to which it adds the description of a category. */
const adding = `<?php isset( $_GET['adds'] ) && add_filter( $_GET['adds'], function ( $link ) {
	$terms = get_the_terms( get_post(), 'category' );
	return $link . '?' . ( $terms ? $terms[0]->description : '' );
} );`

/** Before it has a language, Polylang loads for its administrator only. */
const administering = `<?php 'cli' === PHP_SAPI && define( 'PLL_ADMIN', true );`
const makeLanguages = `
foreach ( array( array( 'English', 'en', 'en_US' ), array( 'Deutsch', 'de', 'de_DE' ) ) as list( $name, $slug, $locale ) ) {
	PLL()->model->languages->add( array( 'name' => $name, 'slug' => $slug, 'locale' => $locale, 'rtl' => 0, 'term_group' => 0 ) );
}
PLL()->model->set_language_in_mass();
foreach ( get_posts( array( 'numberposts' => 5, 'order' => 'ASC', 'lang' => '' ) ) as $post ) {
	pll_set_post_language( $post->ID, 'de' );
}`

describeSite('what responses of a site with languages depend on (Polylang)', () => {
  let site: RealSite

  const read = async (path: string) => {
    const response = await fetch(`${site.origin}/index.php/wp-json${path}`)
    const [{ link = '' } = {}] = (await response.json()) as readonly { readonly link?: string }[]
    return { link, tags: response.headers.get('trellis-tags') ?? '' }
  }

  beforeAll(async () => {
    // With Pods beside it, whose site other tests have built.
    site = await startRealSite({ plugins: pluginSets.pods, withCompanion: true })
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-adding.php`, adding)
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-administering.php`, administering)
    expect(await site.php(makeLanguages)).toEqual({ code: 0, output: '' })
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
})
