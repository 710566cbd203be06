// The parts of core's static blocks and of plain HTML. Content with any other part counts as dynamic: it may render other items.

/** Elements of texts, tables and media. */
export const staticElements: readonly string[] = [
  ...['a', 'abbr', 'address', 'article', 'aside', 'audio', 'b', 'bdi', 'bdo', 'blockquote', 'br', 'caption'],
  ...[
    'cite',
    'code',
    'col',
    'colgroup',
    'dd',
    'del',
    'details',
    'dfn',
    'div',
    'dl',
    'dt',
    'em',
    'figcaption',
  ],
  ...['figure', 'footer', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'header', 'hr', 'i', 'img', 'ins', 'kbd', 'li'],
  ...['main', 'mark', 'ol', 'p', 'picture', 'pre', 'q', 'rp', 'rt', 'ruby', 's', 'samp', 'section', 'small'],
  ...['source', 'span', 'strong', 'sub', 'summary', 'sup', 'table', 'tbody', 'td', 'tfoot', 'th', 'thead'],
  ...['time', 'tr', 'track', 'u', 'ul', 'var', 'video', 'wbr'],
]

/**
 * Core's blocks that are saved as they are shown, by the names that stand in raw content. Not `cover`, `file`, `gallery` and
 * `media-text`, which may take texts from the media library.
 */
export const staticBlocks: readonly string[] = [
  ...['audio', 'button', 'buttons', 'code', 'column', 'columns', 'details', 'freeform', 'group', 'heading'],
  ...['html', 'image', 'list', 'list-item', 'more', 'nextpage', 'paragraph', 'preformatted'],
  ...['pullquote', 'quote', 'separator', 'spacer', 'table', 'text-columns', 'verse', 'video'],
]

/** Classes of these blocks and of what their settings add, as regular expressions for one class. */
export const staticClasses: readonly string[] = [
  `wp-block-(?:${staticBlocks.join('|')})`,
  'wp-block-(?:button|group)__[\\w-]+',
  'wp-element-(?:button|caption)',
  // The number depends on the other content of the same response.
  'wp-(?:elements|container)-[\\w-]+',
  '(?:wp-block-[\\w-]+-)?is-layout-(?:flow|constrained|flex|grid)',
  'is-(?:style|content-justification|vertically-aligned|horizontal|vertical|nowrap|image-fill)[\\w-]*',
  'is-(?:stacked|not-stacked)-on-mobile',
  'are-vertically-aligned-\\w+',
  'has-(?:[\\w-]+-)?(?:color|background|gradient-background|font-size|font-family|border-color|background-color)',
  'has-(?:text-align-\\w+|drop-cap|fixed-layout|global-padding|link-color|custom-[\\w-]+|inline-color)',
  'has-(?:alpha-channel-opacity|css-opacity)',
  'no-border-radius',
  '(?:text-)?align(?:none|left|right|center|wide|full)?',
  'size-[\\w-]+',
  'wp-image-\\d+',
  'wp-smiley',
]

/** A list of pages in a content, which nothing but pages changes. */
export const pageLists = {
  classes: [
    'wp-block-pages?-list[\\w-]*',
    'menu-item-home',
    'has-child',
    'wp-block-navigation__submenu-container',
  ],
  blocks: ['page-list'],
} as const
