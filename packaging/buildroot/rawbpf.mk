################################################################################
#
# rawbpf
#
################################################################################

RAWBPF_VERSION = 0.9.0
RAWBPF_SOURCE = rawbpf-$(RAWBPF_VERSION).tar.xz
RAWBPF_SITE = $(call qstrip,$(BR2_PACKAGE_RAWBPF_SITE))
RAWBPF_LICENSE = MIT
RAWBPF_LICENSE_FILES = LICENSE
RAWBPF_INSTALL_STAGING = YES
RAWBPF_DEPENDENCIES = fmt host-pkgconf

RAWBPF_CONF_OPTS = \
	-Doptimization=s -Dtests=false -Dbpf=dsl -Dotlp=disabled -Dtls=disabled -Ddwarf=disabled \
	-Ddebuginfod=disabled -Dparts=$(call qstrip,$(BR2_PACKAGE_RAWBPF_PARTS))

ifeq ($(BR2_PACKAGE_JSON_FOR_MODERN_CPP),y)
RAWBPF_CONF_OPTS += -Djson=enabled
RAWBPF_DEPENDENCIES += json-for-modern-cpp
else
RAWBPF_CONF_OPTS += -Djson=disabled
endif

ifeq ($(BR2_PACKAGE_XZ),y)
RAWBPF_CONF_OPTS += -Dlzma=enabled
RAWBPF_DEPENDENCIES += xz
else
RAWBPF_CONF_OPTS += -Dlzma=disabled
endif

ifeq ($(BR2_PACKAGE_ZLIB),y)
RAWBPF_CONF_OPTS += -Dzlib=enabled
RAWBPF_DEPENDENCIES += zlib
else
RAWBPF_CONF_OPTS += -Dzlib=disabled
endif

# Of a static system one file is made, which needs nothing.
ifeq ($(BR2_STATIC_LIBS),y)
RAWBPF_CONF_OPTS += -Dstatic=true
endif

$(eval $(meson-package))
