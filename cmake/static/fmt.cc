// fmt as a static library, from Debian's headers: Debian has it as a shared library only. Whoever uses this compiles against
// fmt as for the shared one, so that the portable build takes the objects of the ordinary build from the compiler cache,
// and does not spend 3 s more on each source as it does with fmt in every header.
//
// The templates below are those that fmt's headers declare and leave to the library.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float value) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double value) noexcept;
template FMT_API locale_ref::locale_ref(const std::locale& locale);
template FMT_API std::locale locale_ref::get<std::locale>() const;
template FMT_API thousands_sep_result<char> thousands_sep_impl(locale_ref);
template FMT_API char decimal_point_impl(locale_ref);
template FMT_API void buffer<char>::append(const char* begin, const char* end);
template FMT_API void vformat_to(buffer<char>& buffer, string_view format,
                                 basic_format_args<buffer_context<char>> arguments, locale_ref locale);

}  // namespace detail
FMT_END_NAMESPACE
