//! What `derive(Key)` is given, and all that is wrong with it, each at its own token.
use syn::{Attribute, Data, DeriveInput, Error, Generics, Ident, Member, Path, Type, parse_quote};

/// As many as there are implementations for tuples.
const MOST_FIELDS: usize = 6;

pub(super) struct Input {
    pub(super) slipstream: Path,
    pub(super) name: Ident,
    pub(super) generics: Generics,
    pub(super) fields: Vec<Field>,
    /// With one of these the fields may be missing.
    pub(super) error: Option<Error>,
}

pub(super) struct Field {
    pub(super) member: Member,
    pub(super) ty: Type,
}

pub(super) fn validate(input: DeriveInput) -> Input {
    let mut errors = Errors(None);
    let slipstream = crate_path(&input.attrs, &mut errors);
    parameters(&input.generics, &mut errors);
    let fields = fields(&input, &mut errors);
    Input { slipstream, name: input.ident, generics: input.generics, fields, error: errors.0 }
}

/// Gathered, so that all of them are mended at once.
struct Errors(Option<Error>);

impl Errors {
    fn push(&mut self, error: Error) {
        match &mut self.0 {
            None => self.0 = Some(error),
            Some(errors) => errors.combine(error),
        }
    }
}

/// `::slipstream`, or what `#[key(crate = …)]` says.
fn crate_path(attributes: &[Attribute], errors: &mut Errors) -> Path {
    let mut path = parse_quote!(::slipstream);
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("key")) {
        let parsed = attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("crate") {
                path = meta.value()?.parse()?;
                return Ok(());
            }
            Err(meta.error("unknown argument: `#[key(…)]` takes `crate = path`, the name of Slipstream here"))
        });
        if let Err(error) = parsed {
            errors.push(error);
        }
    }
    path
}

fn parameters(generics: &Generics, errors: &mut Errors) {
    const WHY: &str = "a derived key has no parameters, since a store remembers one format for it: \
                       write concrete types that own what they hold (`String`, not `&str`)";
    if !generics.params.is_empty() {
        errors.push(Error::new_spanned(generics, WHY));
    } else if let Some(clause) = &generics.where_clause {
        errors.push(Error::new_spanned(clause, WHY));
    }
}

fn fields(input: &DeriveInput, errors: &mut Errors) -> Vec<Field> {
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            errors.push(Error::new(
                data.enum_token.span,
                "`derive(Key)` is for structs: the order of the variants would be the order on disk. \
                 Key by a number or a text that stands for the variant, or implement `Key` by hand",
            ));
            return Vec::new();
        }
        Data::Union(data) => {
            errors.push(Error::new(
                data.union_token.span,
                "`derive(Key)` is for structs: what a union holds is not known. Make it a struct",
            ));
            return Vec::new();
        }
    };
    if fields.is_empty() {
        errors.push(Error::new(
            input.ident.span(),
            "a key needs a field to hold it; for a cache of one row the key is `()`",
        ));
    }
    if let Some(seventh) = fields.iter().nth(MOST_FIELDS) {
        errors.push(Error::new_spanned(
            seventh,
            "a key has six fields at most, as a tuple has: \
             put some of them into a struct of their own that derives `Key`",
        ));
    }
    for field in fields {
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("key")) {
            errors.push(Error::new_spanned(attribute, "`#[key(…)]` stands on the struct, not on a field"));
        }
        if let Type::Reference(reference) = bare(&field.ty) {
            errors.push(Error::new_spanned(
                reference,
                "a key owns what it holds, since a cache keeps it: `String` instead of `&str`, `Vec<u8>` \
                 instead of `&[u8]`. A look-up still takes the borrowed form",
            ));
        }
    }
    fields
        .members()
        .zip(fields)
        .map(|(member, field)| Field { member, ty: bare(&field.ty).clone() })
        .collect()
}

/// Without the parentheses around it, and without the unseen ones of a `$ty` from a macro.
fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        _ => ty,
    }
}
