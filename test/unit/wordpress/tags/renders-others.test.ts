import { expect, test } from 'vitest'
import { createRendersOthers } from '../../../../src/wordpress/tags/site-tagger.ts'
import { cost } from '../../../support/cost.ts'

const rendersOthers = createRendersOthers()

/** A response as WordPress writes it. */
const responseOf = (html: string): string =>
  JSON.stringify({ id: 5, content: { rendered: html } }).replaceAll('/', '\\/')

test.each<[string, string]>([
  ['nothing', ''],
  ['a paragraph', '\n<p>Leaf, stem &lt; root.</p>\n'],
  ['a paragraph with settings', '<p class="has-text-align-center has-vivid-red-color has-text-color">x</p>'],
  ['a heading', '<h2 class="wp-block-heading">x</h2>'],
  ['a link with parameters', '<a href="https://example.org/?id=5&amp;data-x=1">x</a>'],
  ['a list', '<ul class="wp-block-list"><li>x</li></ul>'],
  [
    'an image',
    '<figure class="wp-block-image size-large is-style-rounded"><img decoding="async" src="x.png" alt="" class="wp-image-12"/><figcaption class="wp-element-caption">x</figcaption></figure>',
  ],
  [
    'columns',
    '<div class="wp-block-columns is-layout-flex wp-container-core-columns-is-layout-1 wp-block-columns-is-layout-flex"><div class="wp-block-column is-layout-flow wp-block-column-is-layout-flow">x</div></div>',
  ],
  ['a table', '<figure class="wp-block-table"><table class="has-fixed-layout"><tbody><tr><td>1</td></tr>'],
  ['raw blocks that are saved as they are shown', '<!-- wp:paragraph {"align":"center"} --><p>x</p>'],
  ['an empty class', '<p class="">x</p>'],
])('%s renders no other things', (_, html) => {
  expect(rendersOthers(responseOf(html))).toBe(false)
})

test.each<[string, string]>([
  ['a class that no static block has', '<ul class="wp-block-latest-posts__list">'],
  ['one of several classes that no static block has', '<div class="wp-block-group shop-offers">'],
  ['a class in single quotation marks', "<div class='shop'>"],
  ['a class without quotation marks', '<div class=shop>'],
  ['a class on its own line', '<div\nclass="shop">'],
  ['a class in capitals', '<DIV CLASS="shop">'],
  ['an identifier', '<p id="offer">'],
  ['a data attribute', '<p data-offer="5">'],
  ['an event handler', '<p onclick="buy()">'],
  ['a form', '<form><p>x</p></form>'],
  ['a script', '<script>list()</script>'],
  ['a frame', '<iframe src="x">'],
  ['an image that is drawn', '<svg viewBox="0 0 1 1">'],
  ['a custom element', '<shop-offers>'],
  ['an element whose name begins like a plain one', '<a-frame>'],
  ['a comment', '<!--[if IE]>'],
  ['a raw block that renders others', '<!-- wp:latest-posts /-->'],
  ['what a template of PHP indents', '<ul>\n\t\t<li>x</li></ul>'],
])('%s may render other things', (_, html) => {
  expect(rendersOthers(responseOf(html))).toBe(true)
})

test('HTML that is hidden by escapes may render other things', () => {
  expect(rendersOthers('{"content":{"rendered":"\\u003cul class=\\u0022shop\\u0022\\u003e"}}')).toBe(true)
})

test('classes that stand for nothing but the item itself can be named', () => {
  const html = responseOf(
    '<p class="attachment"><a href="x"><img class="attachment-medium size-medium"></a></p>',
  )
  expect(rendersOthers(html)).toBe(true)
  expect(createRendersOthers({ classes: ['attachment', 'attachment-[\\w-]+'] })(html)).toBe(false)
})

test('a long text takes one pass', () => {
  const text = responseOf(
    '<p class="has-text-align-center">Leaf, stem and root. <b>x</b></p>\n'.repeat(20_000),
  )
  // 1.5 MB; a pattern that goes back and forth would take minutes.
  expect(cost(() => expect(rendersOthers(text)).toBe(false), 2_000, 1)).toBeLessThan(2_000)
})
